/* A stand-in for libnvidia-ml.so.1, so that the real binding runs without a card.
 *
 * Two devices: 0 is an A100 with MIG on and two MIG devices, 1 an RTX 4090 that a display uses.
 * NVIDIA_STUB_FAIL="nvmlDeviceGetPowerUsage=3,nvmlInitWithFlags=9" makes calls return an error;
 * "nvmlDeviceGetName@1=15" only for device 1. NVIDIA_STUB_HANG="nvmlDeviceGetTemperature" makes a call
 * never return, NVIDIA_STUB_CRASH makes it end the process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int nvmlReturn_t;
typedef struct { int index; int mig; } device;
typedef device *handle;

static device devices[2] = {{0, -1}, {1, -1}};
static device migs[2] = {{0, 0}, {0, 1}};
static const unsigned long long GIB = 1ull << 30;

static int named(const char *list, const char *call, int index, int *code) {
    char exact[128];
    snprintf(exact, sizeof exact, "%s@%d", call, index);
    for (const char *at = list; at && *at;) {
        const char *end = strchr(at, ',');
        size_t length = end ? (size_t)(end - at) : strlen(at);
        const char *equals = memchr(at, '=', length);
        size_t name = equals ? (size_t)(equals - at) : length;
        if ((strlen(call) == name && !strncmp(at, call, name)) ||
            (strlen(exact) == name && !strncmp(at, exact, name))) {
            if (code && equals) *code = atoi(equals + 1);
            return 1;
        }
        at = end ? end + 1 : NULL;
    }
    return 0;
}

static nvmlReturn_t enter(const char *call, int index) {
    int code = 999;
    if (named(getenv("NVIDIA_STUB_HANG"), call, index, NULL)) for (;;) pause();
    if (named(getenv("NVIDIA_STUB_CRASH"), call, index, NULL)) abort();
    if (named(getenv("NVIDIA_STUB_FAIL"), call, index, &code)) return code;
    return 0;
}

#define ENTER(index) do { nvmlReturn_t r = enter(__func__, index); if (r) return r; } while (0)
#define GET(name, type, a, b) \
    nvmlReturn_t name(handle h, type *out) { ENTER(h->index); *out = h->index ? (b) : (a); return 0; }

const char *nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
    case 1: return "Uninitialized";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 6: return "Not Found";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags) { (void)flags; ENTER(-1); return 0; }
nvmlReturn_t nvmlShutdown(void) { return 0; }

static nvmlReturn_t text(char *out, unsigned length, const char *value) {
    snprintf(out, length, "%s", value);
    return 0;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned length) { ENTER(-1); return text(out, length, "550.54.15"); }
nvmlReturn_t nvmlSystemGetNVMLVersion(char *out, unsigned length) { ENTER(-1); return text(out, length, "12.550.54.15"); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *out) { ENTER(-1); *out = 12040; return 0; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *out) { ENTER(-1); *out = 2; return 0; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *out) {
    ENTER((int)index);
    if (index > 1) return 2;
    *out = &devices[index];
    return 0;
}

nvmlReturn_t nvmlDeviceGetName(handle h, char *out, unsigned length) {
    ENTER(h->index);
    if (h->mig >= 0) return text(out, length, "NVIDIA A100-SXM4-40GB MIG 3g.20gb");
    return text(out, length, h->index ? "NVIDIA GeForce RTX 4090" : "NVIDIA A100-SXM4-40GB");
}
nvmlReturn_t nvmlDeviceGetUUID(handle h, char *out, unsigned length) {
    char value[64];
    ENTER(h->index);
    snprintf(value, sizeof value, "%s-00000000-0000-0000-0000-0000000000%d%d", h->mig >= 0 ? "MIG" : "GPU",
             h->index, h->mig + 1);
    return text(out, length, value);
}

typedef struct { unsigned long long total, free, used; } memory_v1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
static unsigned long long total_of(handle h) { return (h->mig >= 0 ? 20 : h->index ? 24 : 40) * GIB; }
static unsigned long long used_of(handle h) { return (h->mig >= 0 ? 0 : h->index ? 20 : 1) * GIB; }
nvmlReturn_t nvmlDeviceGetMemoryInfo(handle h, memory_v1 *out) {
    ENTER(h->index);
    out->total = total_of(h);
    out->used = used_of(h) + GIB / 2;
    out->free = out->total - out->used;
    return 0;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(handle h, memory_v2 *out) {
    ENTER(h->index);
    if (out->version != 0x02000028) return 25;
    out->total = total_of(h);
    out->reserved = GIB / 2;
    out->used = used_of(h);
    out->free = out->total - out->used - out->reserved;
    return 0;
}

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char id[32];
} pci_info;
nvmlReturn_t nvmlDeviceGetPciInfo_v3(handle h, pci_info *out) {
    ENTER(h->index);
    memset(out, 0, sizeof *out);
    snprintf(out->id, sizeof out->id, "00000000:%02X:00.0", h->index ? 0x41 : 0x01);
    return 0;
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(handle h, int *major, int *minor) {
    ENTER(h->index);
    *major = 8;
    *minor = h->index ? 9 : 0;
    return 0;
}
nvmlReturn_t nvmlDeviceGetMigMode(handle h, unsigned *current, unsigned *pending) {
    ENTER(h->index);
    if (h->index) return 3;
    *current = *pending = 1;
    return 0;
}
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(handle h, unsigned number, handle *out) {
    ENTER(h->index);
    if (number > 1) return 6;
    *out = &migs[number];
    return 0;
}
nvmlReturn_t nvmlDeviceGetEccMode(handle h, int *current, int *pending) {
    ENTER(h->index);
    if (h->index) return 3;
    *current = *pending = 1;
    return 0;
}
nvmlReturn_t nvmlDeviceGetTotalEccErrors(handle h, int type, int counter, unsigned long long *out) {
    (void)type; (void)counter;
    ENTER(h->index);
    if (h->index) return 3;
    *out = 0;
    return 0;
}
nvmlReturn_t nvmlDeviceGetTemperature(handle h, int sensor, unsigned *out) {
    (void)sensor;
    ENTER(h->index);
    *out = h->index ? 71 : 34;
    return 0;
}
typedef struct { unsigned gpu, memory; } utilization;
nvmlReturn_t nvmlDeviceGetUtilizationRates(handle h, utilization *out) {
    ENTER(h->index);
    out->gpu = h->index ? 97 : 0;
    out->memory = 0;
    return 0;
}

GET(nvmlDeviceGetMaxMigDeviceCount, unsigned, 7, 0)
GET(nvmlDeviceGetComputeMode, int, 0, 0)
GET(nvmlDeviceGetPersistenceMode, int, 1, 0)
GET(nvmlDeviceGetDisplayActive, int, 0, 1)
GET(nvmlDeviceGetEnforcedPowerLimit, unsigned, 400000, 450000)
GET(nvmlDeviceGetPowerUsage, unsigned, 52000, 431500)
GET(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, 0x1, 0x24)
GET(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, 4, 1)
GET(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 16, 8)
GET(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 4, 4)
GET(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 16, 16)

typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process;
static nvmlReturn_t list(handle h, unsigned *count, process *out, int graphics) {
    const char *text = getenv("NVIDIA_STUB_PID");
    unsigned wanted = h->index && !graphics ? 2 : 0;
    if (!wanted) { *count = 0; return 0; }
    if (*count < wanted || !out) { *count = wanted; return 7; }
    memset(out, 0, wanted * sizeof *out);
    out[0].pid = text ? (unsigned)atoi(text) : 4242;
    out[0].used = 19 * GIB;
    out[1].pid = 4000000;
    out[1].used = ~0ull;
    *count = wanted;
    return 0;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(handle h, unsigned *count, process *out) {
    ENTER(h->index);
    return list(h, count, out, 0);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(handle h, unsigned *count, process *out) {
    ENTER(h->index);
    return list(h, count, out, 1);
}
