/* ISA-L and jerasure from C, for ../bench_erasure.py: what it asks for on standard input, one line an answer.
 *
 *   prepare NAME K M PARTS SECTOR_BYTES GROUPS ERASED   answered by "ready"
 *   run                                                 answered by the nanoseconds of processor time a codeword took
 *
 * NAME is read (all user sectors in their order, which is what memory allows), isal (one ec_encode_data a codeword,
 * planes of 1/PARTS of a sector), isal-blocked (32 sectors a call), isal-update (ec_encode_data_update, a call for each
 * plane), jerasure (one matrix), jerasure-bitmatrix (Cauchy, smart schedule, packets of 1/8 of a sector),
 * jerasure-decode (jerasure_matrix_decode, which inverts a k x k matrix) or jerasure-rebuild (its products alone, with
 * that matrix made beforehand). ISA-L is the library named by the first argument, to be the one that Rackloop uses.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jerasure.h>
#include <jerasure/cauchy.h>
#include <jerasure/reed_sol.h>

enum { BLOCK_SECTORS = 32 };

static void (*init_tables)(int k, int rows, unsigned char *matrix, unsigned char *tables);
static void (*encode_data)(int len, int k, int rows, unsigned char *tables, unsigned char **data, unsigned char **coding);

static void (*encode_update)(int len, int k, int rows, int column, unsigned char *tables, unsigned char *data, unsigned char **coding);

static char name[32];
static volatile uint64_t seen;
static int k, m, parts, sector_bytes, groups, erased;
static unsigned char *bytes, *redundancy, *scratch, *tables;
static unsigned char **sources, **outputs, **scratch_planes;
static int *matrix, *inverted, *ids, *erasures, *erased_flags, **schedule;

static void *checked(void *pointer) {
    if (pointer == NULL) {
        fprintf(stderr, "peers: out of memory, or no matrix for k = %d, m = %d\n", k, m);
        exit(1);
    }
    return pointer;
}

static unsigned char *aligned(size_t size) {
    return checked(aligned_alloc(4096, (size + 4095) / 4096 * 4096));
}

static int is(const char *wanted) { return strcmp(name, wanted) == 0; }

static void prepare(void) {
    size_t codeword = (size_t)k * sector_bytes, parity = (size_t)m * sector_bytes;
    int planes = k * parts, rows = m * parts;
    free(bytes), free(redundancy), free(scratch), free(tables), free(sources), free(outputs), free(scratch_planes);
    bytes = aligned(codeword * groups);
    redundancy = aligned(parity * groups);
    scratch = aligned(parity);
    for (size_t at = 0; at < codeword * groups; at++) bytes[at] = (unsigned char)(at * 2654435761u >> 13);
    memset(redundancy, 1, parity * groups);
    sources = checked(calloc((size_t)planes * groups, sizeof *sources));
    outputs = checked(calloc((size_t)rows * groups, sizeof *outputs));
    scratch_planes = checked(calloc(rows, sizeof *scratch_planes));
    for (int at = 0; at < planes * groups; at++) sources[at] = bytes + (size_t)at * (sector_bytes / parts);
    for (int at = 0; at < rows * groups; at++) outputs[at] = redundancy + (size_t)at * (sector_bytes / parts);
    for (int at = 0; at < rows; at++) scratch_planes[at] = scratch + (size_t)at * (sector_bytes / parts);
    tables = aligned((size_t)32 * planes * rows);
    if (strncmp(name, "isal", 4) == 0) {
        /* Blocks have tables of their own, one behind the other. The time does not depend on the coefficients. */
        int step = is("isal-blocked") ? BLOCK_SECTORS * parts : planes;
        unsigned char *coefficients = aligned((size_t)planes * rows);
        for (int at = 0; at < planes * rows; at++) coefficients[at] = (unsigned char)(at * 7 % 255 + 1);
        for (int at = 0; at < planes; at += step)
            init_tables(planes - at < step ? planes - at : step, rows, coefficients, tables + (size_t)32 * rows * at);
        free(coefficients);
        return;
    }
    if (is("read")) return;
    matrix = checked(is("jerasure-bitmatrix") ? cauchy_good_general_coding_matrix(k, m, 8)
                                              : reed_sol_vandermonde_coding_matrix(k, m, 8));
    if (is("jerasure-bitmatrix"))
        schedule = jerasure_smart_bitmatrix_to_schedule(k, m, 8, jerasure_matrix_to_bitmatrix(k, m, 8, matrix));
    erasures = checked(calloc(erased + 1, sizeof *erasures));
    erased_flags = checked(calloc(k + m, sizeof *erased_flags));
    for (int at = 0; at < erased; at++) {
        erasures[at] = at * (k / erased);
        erased_flags[erasures[at]] = 1;
    }
    erasures[erased] = -1;
    if (is("jerasure-rebuild")) {
        inverted = checked(calloc((size_t)k * k, sizeof *inverted));
        ids = checked(calloc(k, sizeof *ids));
        jerasure_make_decoding_matrix(k, m, 8, matrix, erased_flags, inverted, ids);
    }
}

static void blocked(unsigned char **from, unsigned char **to) {
    int planes = k * parts, rows = m * parts, step = BLOCK_SECTORS * parts, length = sector_bytes / parts;
    for (int at = 0; at < planes; at += step) {
        int count = planes - at < step ? planes - at : step;
        encode_data(length, count, rows, tables + (size_t)32 * rows * at, from + at, at ? scratch_planes : to);
        if (at)
            for (int row = 0; row < rows; row++)
                for (int word = 0; word < length / 8; word++) ((uint64_t *)to[row])[word] ^= ((uint64_t *)scratch_planes[row])[word];
    }
}

static void updated(unsigned char **from, unsigned char **to) {
    int planes = k * parts, rows = m * parts, length = sector_bytes / parts;
    for (int row = 0; row < rows; row++) memset(to[row], 0, length);
    for (int at = 0; at < planes; at++) encode_update(length, planes, rows, at, tables, from[at], to);
}

/* Several sums, so that none of them waits for itself. */
static void read_all(const uint64_t *from, size_t words) {
    uint64_t sums[32] = {0};
    for (size_t at = 0; at + 32 <= words; at += 32)
        for (int lane = 0; lane < 32; lane++) sums[lane] ^= from[at + lane];
    for (int lane = 0; lane < 32; lane++) seen ^= sums[lane];
}

static void one(int group) {
    unsigned char **from = sources + (size_t)group * k * parts, **to = outputs + (size_t)group * m * parts;
    char **data = (char **)from, **coding = (char **)to;
    if (is("read")) read_all((uint64_t *)from[0], (size_t)k * sector_bytes / 8);
    if (is("isal-update")) updated(from, to);
    if (is("isal")) encode_data(sector_bytes / parts, k * parts, m * parts, tables, from, to);
    if (is("isal-blocked")) blocked(from, to);
    if (is("jerasure")) jerasure_matrix_encode(k, m, 8, matrix, data, coding, sector_bytes);
    if (is("jerasure-bitmatrix")) jerasure_schedule_encode(k, m, 8, schedule, data, coding, sector_bytes, sector_bytes / 8);
    if (is("jerasure-decode")) jerasure_matrix_decode(k, m, 8, matrix, 1, erasures, data, coding, sector_bytes);
    if (is("jerasure-rebuild"))
        for (int at = 0; at < erased; at++)
            jerasure_matrix_dotprod(k, 8, inverted + (size_t)erasures[at] * k, ids, erasures[at], data, coding, sector_bytes);
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int argc, char **argv) {
    void *isal = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (isal == NULL) {
        fprintf(stderr, "usage: peers ISAL_LIBRARY: %s\n", argc == 2 ? dlerror() : "expected one argument");
        return 2;
    }
    *(void **)&init_tables = checked(dlsym(isal, "ec_init_tables"));
    *(void **)&encode_data = checked(dlsym(isal, "ec_encode_data"));
    *(void **)&encode_update = checked(dlsym(isal, "ec_encode_data_update"));
    char line[256];
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "prepare %31s %d %d %d %d %d %d", name, &k, &m, &parts, &sector_bytes, &groups, &erased) == 7) {
            prepare();
            puts("ready");
        } else {
            double began = now_ns();
            for (int group = 0; group < groups; group++) one(group);
            printf("%.0f\n", (now_ns() - began) / groups);
        }
        fflush(stdout);
    }
    return 0;
}
