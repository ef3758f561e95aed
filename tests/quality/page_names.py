"""What studies are called that are no simulated design."""

# whether in order of time
CONTENDED = {"contended-resampled": False, "contended-order": True}
GO = {"go-resampled": False, "go-order": True}
SERIES = "series"
WARMTH = {
    "warm": "warm from the first iteration on",
    "warming": "the first forty iterations 60 % slower, and none dropped",
    "never-steady": "each run 10 % slower at its end than at its beginning",
}
