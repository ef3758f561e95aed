/* A driver library that says what its environment tells it to say.

   Built by the tests as libnvidia-ml.so.1, loaded through LD_LIBRARY_PATH, and
   read by the real binding. With -DOLD it lacks the newer calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, DENIED = 4, NOT_FOUND = 6, SMALL = 7, TIMEOUT = 10 };
typedef void *Device;
typedef union { double d; unsigned int ui; unsigned long long ull; } Value;
typedef struct {
    unsigned int field, scope;
    long long timestamp, latency;
    int type, result;
    Value value;
} Field;
typedef struct { unsigned int pid; unsigned long long memory; unsigned int gi, ci; } Process;
typedef struct { unsigned int version; int sensor, temperature; } Temperature;
typedef struct { unsigned int version; int margin; } Margin;
typedef struct { unsigned int gpu, memory; } Utilisation;
typedef struct { unsigned long long total, free, used; } Memory;

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 0) : otherwise;
}

static int calls;
static int answer(void) {
    long after = number("STUB_FAIL_AFTER", -1);
    calls++;
    return after >= 0 && calls > after ? (int)number("STUB_FAIL_CODE", 999) : OK;
}

/* every quantity: fail if it is time to, say "not supported" if it is empty */
#define ASK(name, otherwise)                                        \
    int result = answer();                                          \
    if (result) return result;                                      \
    const char *given = getenv(name);                               \
    if (given && !*given) return UNSUPPORTED;                       \
    long value = number(name, otherwise)

static int place(Device device) { return (int)(long)device - 1; }

int nvmlInitWithFlags(unsigned int flags) { (void)flags; return (int)number("STUB_INIT", OK); }
int nvmlInit(void) { return nvmlInitWithFlags(0); }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int code) {
    static char text[40];
    if (code == 999) return "Unknown Error";
    if (code == 15) return "GPU is lost";
    if (code == 4) return "Insufficient Permissions";
    snprintf(text, sizeof text, "error %d", code);
    return text;
}

int nvmlSystemGetDriverVersion(char *text, unsigned int length) {
    snprintf(text, length, "580.65.06");
    return OK;
}
int nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = (unsigned int)number("STUB_COUNT", 1);
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device *device) {
    if (index >= number("STUB_COUNT", 1)) return INVALID;
    if (number("STUB_HANDLE", OK)) return (int)number("STUB_HANDLE", OK);
    *device = (Device)(long)(index + 1);
    return OK;
}
/* GPU-0, GPU-1 …; slices of a GPU are MIG-0, MIG-1 … with handles from 100 on */
int nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) {
    long index = strtol(uuid + 4, NULL, 10);
    if (number("STUB_HANDLE", OK)) return (int)number("STUB_HANDLE", OK);
    if (!strncmp(uuid, "MIG-", 4) && number("STUB_SLICES", 0) > index) {
        *device = (Device)(100 + index);
        return OK;
    }
    if (strncmp(uuid, "GPU-", 4) || index >= number("STUB_COUNT", 1)) return NOT_FOUND;
    *device = (Device)(index + 1);
    return OK;
}
int nvmlDeviceGetUUID(Device device, char *text, unsigned int length) {
    if ((long)device >= 100) snprintf(text, length, "MIG-%ld", (long)device - 100);
    else snprintf(text, length, "GPU-%d", place(device));
    return OK;
}
int nvmlDeviceGetName(Device device, char *text, unsigned int length) {
    const char *slice = (long)device >= 100 ? " MIG 1g.10gb" : "";
    snprintf(text, length, "NVIDIA Stub%s", slice);
    return OK;
}
int nvmlDeviceGetMemoryInfo(Device device, Memory *memory) {
    memory->total = (long)device >= 100 ? 10ULL << 30 : 80ULL << 30;
    memory->free = number("STUB_FREE_MIB", memory->total >> 20) << 20;
    memory->used = 0;
    return OK;
}

int nvmlDeviceIsMigDeviceHandle(Device device, unsigned int *is) {
    *is = (long)device >= 100;
    return OK;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device slice, Device *device) {
    (void)slice;
    *device = (Device)1;
    return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned int *count) {
    (void)device;
    *count = 7;
    return OK;
}
int nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned int index, Device *slice) {
    if (place(device) != 0 || index >= number("STUB_SLICES", 0)) return NOT_FOUND;
    *slice = (Device)(long)(100 + index);
    return OK;
}
int nvmlDeviceGetMigMode(Device device, unsigned int *now, unsigned int *pending) {
    ASK("STUB_MIG", 0);
    (void)device;
    *now = *pending = (unsigned int)value;
    return OK;
}

static int reasons(Device device, unsigned long long *bits) {
    ASK("STUB_REASONS", 0);
    (void)device;
    *bits = (unsigned long long)value;
    return OK;
}
static int temperature(int *warmth) {
    ASK("STUB_TEMPERATURE", 45);
    *warmth = (int)value;
    return OK;
}
#ifdef OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long *bits) {
    return reasons(device, bits);
}
int nvmlDeviceGetTemperature(Device device, int sensor, unsigned int *warmth) {
    (void)device, (void)sensor;
    return temperature((int *)warmth);
}
int nvmlDeviceGetTemperatureThreshold(Device device, int kind, unsigned int *limit) {
    (void)device;
    *limit = kind == 1 ? 90 : 0;
    return OK;
}
#else
int nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long *bits) {
    return reasons(device, bits);
}
int nvmlDeviceGetTemperatureV(Device device, Temperature *asked) {
    (void)device;
    return asked->version == 0x100000C ? temperature(&asked->temperature) : 25;
}
int nvmlDeviceGetMarginTemperature(Device device, Margin *asked) {
    ASK("STUB_MARGIN", 40);
    (void)device;
    asked->margin = (int)value;
    return OK;
}
#endif

int nvmlDeviceGetClockInfo(Device device, int kind, unsigned int *mhz) {
    ASK("STUB_SM", 1980);
    *mhz = kind == 1 ? (unsigned int)value + 100 * place(device) : 2619;
    return OK;
}
int nvmlDeviceGetMaxClockInfo(Device device, int kind, unsigned int *mhz) {
    (void)device, (void)kind;
    *mhz = 1980;
    return OK;
}
int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned int *milliwatts) {
    (void)device;
    *milliwatts = 700000;
    return OK;
}
int nvmlDeviceGetUtilizationRates(Device device, Utilisation *rates) {
    ASK("STUB_BUSY", 0);
    (void)device;
    rates->gpu = (unsigned int)value;
    rates->memory = 0;
    return OK;
}
int nvmlDeviceGetEccMode(Device device, int *now, int *pending) {
    ASK("STUB_ECC", 1);
    (void)device;
    *now = *pending = (int)value;
    return OK;
}
int nvmlDeviceGetTotalEccErrors(Device device, int kind, int since, unsigned long long *count) {
    ASK("STUB_ECC_ERRORS", 0);
    (void)device;
    *count = kind == 1 && since == 0 ? (unsigned long long)value : 99;
    return OK;
}
int nvmlDeviceGetPersistenceMode(Device device, int *mode) {
    ASK("STUB_PERSISTENCE", 1);
    (void)device;
    *mode = (int)value;
    return OK;
}
int nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned int *generation) {
    ASK("STUB_PCIE_GENERATION", 5);
    (void)device;
    *generation = (unsigned int)value;
    return OK;
}
int nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned int *width) {
    ASK("STUB_PCIE_WIDTH", 16);
    (void)device;
    *width = (unsigned int)value;
    return OK;
}
int nvmlDeviceGetPerformanceState(Device device, int *state) {
    (void)device;
    *state = 0;
    return OK;
}

/* counters grow by STUB_THERMAL_NS at each reading; 269 is not supported, 79 is a
   double, and 186 an unsigned int in milliwatts */
int nvmlDeviceGetFieldValues(Device device, int count, Field *fields) {
    static unsigned long long grown;
    ASK("STUB_THERMAL_NS", 0);
    (void)device;
    grown += (unsigned long long)value;
    for (int i = 0; i < count; i++) {
        Field *field = &fields[i];
        field->result = OK;
        field->type = 3;
        field->value.ull = 0;
        switch (field->field) {
        case 74: field->value.ull = 2000000000ULL; break;
        case 79: field->type = 0; field->value.d = 5e8; break;
        case 269: field->result = UNSUPPORTED; field->value.ull = ~0ULL; break;
        case 270: field->value.ull = 1000000000ULL + grown; break;
        case 82: field->type = 1; field->value.ui = 61; break;
        case 186: field->type = 1; field->value.ui = 250500; break;
        }
    }
    return OK;
}

/* STUB_PROCESSES: process ids with commas; how many there are is asked first */
static int processes(unsigned int *count, Process *found) {
    ASK("STUB_PROCESSES", 0);
    const char *text = getenv("STUB_PROCESSES");
    unsigned int listed = 0;
    (void)value;
    for (char *end; text && *text; text = *end ? end + 1 : end) {
        unsigned int pid = (unsigned int)strtoul(text, &end, 10);
        if (end == text) break;
        if (found && listed < *count) {
            found[listed].pid = pid;
            found[listed].memory = listed ? ~0ULL : 1ULL << 30;
        }
        listed++;
    }
    int fits = found && listed <= *count;
    *count = listed;
    return fits || !listed ? OK : SMALL;
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned int *count, Process *found) {
    (void)device, (void)found;
    *count = 0;
    return OK;
}
#ifdef OLD
int nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned int *count, Process *found) {
#else
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned int *count, Process *found) {
#endif
    (void)device;
    return processes(count, found);
}

/* STUB_ROWS: 1 pending, 2 failed; not supported where empty */
int nvmlDeviceGetRemappedRows(
    Device device, unsigned int *fixed, unsigned int *lost, unsigned int *pending,
    unsigned int *failed
) {
    const char *given = getenv("STUB_ROWS");
    (void)device;
    if (given && !*given) return UNSUPPORTED;
    *fixed = *lost = 0;
    *pending = number("STUB_ROWS", 0) == 1;
    *failed = number("STUB_ROWS", 0) == 2;
    return OK;
}

/* STUB_XID: errors with commas, one an event, all of them at the STUB_XID_ATth
   reading; STUB_EVENTS: the kinds of events there are, and STUB_EVENT_FAIL what
   waiting for one answers instead */
typedef struct {
    Device device;
    unsigned long long type, data;
    unsigned int gi, ci;
} Event;
static const char *reported;
static int emptied, registered;
int nvmlDeviceGetSupportedEventTypes(Device device, unsigned long long *kinds) {
    const char *given = getenv("STUB_EVENTS");
    (void)device;
    if (given && !*given) return UNSUPPORTED;
    *kinds = (unsigned long long)number("STUB_EVENTS", 0x1f);
    return OK;
}
int nvmlEventSetCreate(void **events) {
    *events = (void *)&registered;
    return OK;
}
int nvmlDeviceRegisterEvents(Device device, unsigned long long kinds, void *events) {
    if (number("STUB_NO_EVENTS", 0)) return DENIED;
    registered = kinds == 8 && events == (void *)&registered && (long)device < 100;
    return registered ? OK : INVALID;
}
static int wait_event(void *events, Event *event, unsigned int milliseconds) {
    if (events != (void *)&registered || !registered || milliseconds) return INVALID;
    if (number("STUB_EVENT_FAIL", OK)) return (int)number("STUB_EVENT_FAIL", OK);
    if (!reported && emptied + 1 >= number("STUB_XID_AT", 1)) reported = getenv("STUB_XID");
    if (!reported || !*reported) {
        emptied++;
        return TIMEOUT;
    }
    char *end;
    event->device = (Device)1;
    event->type = 8;
    event->data = strtoull(reported, &end, 10);
    reported = *end ? end + 1 : end;
    return OK;
}
#ifndef OLD
int nvmlEventSetWait_v2(void *events, Event *event, unsigned int milliseconds) {
    return wait_event(events, event, milliseconds);
}
#endif
int nvmlEventSetWait(void *events, Event *event, unsigned int milliseconds) {
    return wait_event(events, event, milliseconds);
}
int nvmlEventSetFree(void *events) {
    const char *path = getenv("STUB_FREED"); /* a file that comes to be */
    FILE *freed = path && events == (void *)&registered ? fopen(path, "w") : NULL;
    if (freed) fclose(freed);
    return OK;
}

/* what would change a machine is written down, for the tests to see */
static int note(const char *text) {
    const char *path = getenv("STUB_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fputs(text, log);
        fclose(log);
    }
    return OK;
}
int nvmlDeviceSetGpuLockedClocks(Device device, unsigned int least, unsigned int most) {
    char text[80];
    if (number("STUB_NOT_ROOT", 0)) return DENIED;
    snprintf(text, sizeof text, "lock %d %#x %#x\n", place(device), least, most);
    return note(text);
}
int nvmlDeviceResetGpuLockedClocks(Device device) {
    char text[40];
    snprintf(text, sizeof text, "reset %d\n", place(device));
    return note(text);
}
