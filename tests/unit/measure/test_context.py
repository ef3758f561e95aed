import pytest


@pytest.mark.parametrize(("name", "value"), [("slowdown", -0.1), ("max_time_s", 0.0)])
def test_impossible_values_are_refused(make_context, name, value):
    with pytest.raises(ValueError, match=f"{name}={value}"):
        make_context(**{name: value})
