/* Preloaded into a host: the time of day that it sees is off by as many nanoseconds as a file says at that moment.

The file's name is in CHAOS_CLOCK; it is mapped, so a running process sees every change at once. Clocks that
nobody can set, and every other process, are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile int64_t unset = 0;
static volatile int64_t *off_by_ns = &unset;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_clock(void) {
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    const char *name = getenv("CHAOS_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *off_by_ns, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) off_by_ns = mapped;
    close(file);
}

int clock_gettime(clockid_t which, struct timespec *told) {
    if (!real_clock_gettime) real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real_clock_gettime(which, told);
    if (failed || (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE)) return failed;
    int64_t ns = told->tv_sec * SECOND + told->tv_nsec + *off_by_ns;
    told->tv_sec = ns / SECOND;
    told->tv_nsec = ns % SECOND;
    return 0;
}

int gettimeofday(struct timeval *restrict told, void *restrict zone) {
    (void)zone;
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (told) *told = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *told, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, told) ? base : 0;
}
