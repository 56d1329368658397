/* guard.c - checks of HDF5 objects before they are read, and the child process
 * that reads a file without checksums first. */
#define _GNU_SOURCE
#include "traces/file/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "traces/bytes/source.h"
#include "traces/file/file_parts.h"

/* INFLATION_MAX is the largest ratio of unpacked to stored bytes: the built-in
 * filters of HDF5 compress data at most by a factor of about 1000. CHECKED is
 * the first version of the superblock with checksums. */
enum { INFLATION_MAX = 2048, CHECKED = 2, TRIAL_SECONDS = 1 };

/* A child that waits for a slow disk uses little processor time: it may take so
 * many times as long. */
enum { WALL_TIMES = 60 };

/* -- the file -------------------------------------------------------------- */

/* The version of the superblock; -1 if the file has no signature of HDF5 at
 * its beginning. */
static int superblock(const char *path)
{
    enum { SIGNATURE = 8 };
    unsigned char bytes[SIGNATURE + 1];
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t count = file >= 0 ? read(file, bytes, sizeof(bytes)) : -1;

    if (file >= 0)
        close(file);
    return count == sizeof(bytes) && trace_file_is(bytes, sizeof(bytes))
               ? bytes[SIGNATURE]
               : -1;
}

bool hdf5_is(const char *path)
{
    return superblock(path) >= 0;
}

/* In the child: no message, no memory image, no handler of the program, a
 * limit of processor time and one of wall time. */
static void restrain(const char *path)
{
    struct stat info = {0};
    struct rlimit none = {0, 0}, most;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int number = 1; number < SIGRTMIN; number++)
        signal(number, SIG_DFL);
    (void)stat(path, &info);
    most.rlim_cur = most.rlim_max =
        TRIAL_SECONDS + (rlim_t)info.st_size / FRAG_MIB * 3 / 2;
    (void)setrlimit(RLIMIT_CPU, &most);
    alarm((unsigned)most.rlim_max * WALL_TIMES);
    (void)setrlimit(RLIMIT_CORE, &none);
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
}

bool hdf5_survives(const char *path, void (*read)(const char *path))
{
    pid_t child;
    int how;

    if (superblock(path) >= CHECKED)
        return true;
    child = fork();
    if (child == 0) {
        restrain(path);
        read(path);
        _exit(0);
    }
    if (child < 0)
        return true;
    while (waitpid(child, &how, 0) < 0) {
        if (errno != EINTR)
            return true;
        kill(child, SIGKILL);
    }
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

hid_t hdf5_open(struct hdf5_fault *fault, const char *path)
{
    struct stat info;

    if (stat(path, &info) < 0 || !S_ISREG(info.st_mode))
        return -1;
    fault->most = frag_source_most((uint64_t)info.st_size);
    return H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
}

/* -- objects --------------------------------------------------------------- */

bool hdf5_has(hid_t at, const char *name)
{
    return H5Lexists(at, name, H5P_DEFAULT) > 0;
}

/* Why the object is not opened; NULL if the link leads to an object of this
 * file, or if there is no link. */
static const char *misled(hid_t at, const char *name)
{
    H5L_info_t link;

    if (!hdf5_has(at, name) || H5Lget_info(at, name, &link, H5P_DEFAULT) < 0 ||
        link.type == H5L_TYPE_HARD)
        return NULL;
    return link.type == H5L_TYPE_SOFT       ? "a symbolic link"
           : link.type == H5L_TYPE_EXTERNAL ? "a link into another file"
                                            : "a link of an unknown kind";
}

/* Why the rows of the dataset are not in this file; NULL if they are. */
static const char *elsewhere(hid_t data)
{
    hid_t how = H5Dget_create_plist(data);
    const char *why = how < 0                             ? "damage"
                      : H5Pget_layout(how) == H5D_VIRTUAL ? "a virtual dataset"
                      : H5Pget_external_count(how) != 0 ? "data in another file"
                                                        : NULL;

    hdf5_drop(how);
    return why;
}

static hid_t refused(struct hdf5_fault *fault, hid_t at, const char *name,
                     const char *found)
{
    char group[64] = "";

    if (!found || *fault->found)
        return -1;
    (void)H5Iget_name(at, group, sizeof(group));
    snprintf(fault->found, sizeof(fault->found), "%s at \"%s%s%.40s\"", found,
             group, strcmp(group, "/") ? "/" : "", name);
    return -1;
}

hid_t hdf5_group(struct hdf5_fault *fault, hid_t at, const char *name)
{
    const char *why = misled(at, name);

    return !why && hdf5_has(at, name) ? H5Gopen2(at, name, H5P_DEFAULT)
                                      : refused(fault, at, name, why);
}

/* The bytes in memory of a dataset that is packed, or has rows that the file
 * does not store; 0 if it is stored as it is. */
static uint64_t unpacked_bytes(hid_t data)
{
    hid_t space = H5Dget_space(data), type = H5Dget_type(data);
    const hssize_t rows = space < 0 ? 0 : H5Sget_simple_extent_npoints(space);
    const uint64_t item = type < 0 ? 0 : H5Tget_size(type);
    const uint64_t stored = H5Dget_storage_size(data);

    hdf5_drop(space);
    hdf5_drop(type);
    if (rows <= 0 || !item || (uint64_t)rows <= stored / item)
        return 0;
    return (uint64_t)rows > UINT64_MAX / 2 / item ? UINT64_MAX / 2
                                                  : (uint64_t)rows * item;
}

/* Why the datasets that were opened are too large; NULL if they are not. */
static const char *too_much(struct hdf5_fault *fault, hid_t data)
{
    const uint64_t more = unpacked_bytes(data);

    if (fault->unpacked > fault->most || more > fault->most - fault->unpacked)
        return "more than --" SOURCE_MOST_OPTION " SIZE allows";
    fault->unpacked += more;
    return NULL;
}

hid_t hdf5_dataset(struct hdf5_fault *fault, hid_t at, const char *name)
{
    const char *why = misled(at, name);
    hid_t data = !why && hdf5_has(at, name) ? H5Dopen2(at, name, H5P_DEFAULT)
                                            : refused(fault, at, name, why);

    if (data < 0)
        return -1;
    why = elsewhere(data);
    why = why ? why : too_much(fault, data);
    if (!why)
        return data;
    H5Dclose(data);
    return refused(fault, at, name, why);
}

/* -- datasets -------------------------------------------------------------- */

static bool is_of(hid_t type, H5T_class_t class)
{
    const H5T_class_t found = H5Tget_class(type);

    return found == class || (class == H5T_INTEGER && found == H5T_ENUM);
}

bool hdf5_holds(hid_t data, H5T_class_t class)
{
    hid_t type = H5Dget_type(data);
    const bool fine = type >= 0 && is_of(type, class);

    hdf5_drop(type);
    return fine;
}

bool hdf5_rows(hid_t data, size_t item, uint64_t file_bytes, uint64_t *rows)
{
    hid_t space = H5Dget_space(data);
    hsize_t count = 0;
    const bool fine = space >= 0 && H5Sget_simple_extent_ndims(space) == 1 &&
                      H5Sget_simple_extent_dims(space, &count, NULL) == 1 &&
                      count <= file_bytes * INFLATION_MAX / item;

    hdf5_drop(space);
    if (fine)
        *rows = count;
    return fine;
}

/* -- attributes ------------------------------------------------------------ */

/* An open attribute. */
struct attribute {
    hid_t id, type, space;
    uint64_t count; /* elements */
};

static void close_attribute(struct attribute *a)
{
    hdf5_drop(a->space);
    hdf5_drop(a->type);
    hdf5_drop(a->id);
}

/* False if there is no such attribute, or none of this class. Call
 * close_attribute in any case. */
static bool open_attribute(struct attribute *a, hid_t at, const char *name,
                           H5T_class_t class)
{
    hssize_t count;

    *a = (struct attribute){-1, -1, -1, 0};
    if (H5Aexists(at, name) <= 0)
        return false;
    a->id = H5Aopen(at, name, H5P_DEFAULT);
    if (a->id < 0)
        return false;
    a->type = H5Aget_type(a->id);
    a->space = H5Aget_space(a->id);
    if (a->type < 0 || a->space < 0 || !is_of(a->type, class))
        return false;
    count = H5Sget_simple_extent_npoints(a->space);
    a->count = (uint64_t)count;
    return count >= 0;
}

bool hdf5_number(hid_t at, const char *name, uint64_t *value)
{
    struct attribute a;
    uint64_t found = 0;
    bool fine = open_attribute(&a, at, name, H5T_INTEGER) && a.count == 1 &&
                H5Tget_size(a.type) <= sizeof(found) &&
                H5Aread(a.id,
                        H5Tget_sign(a.type) == H5T_SGN_2 ? H5T_NATIVE_INT64
                                                         : H5T_NATIVE_UINT64,
                        &found) >= 0;

    close_attribute(&a);
    if (fine)
        *value = found;
    return fine;
}

/* Copies `count` texts into one block: the pointers, then the characters.
 * `wide` is the room of each text; 0: `read' has pointers to them. NULL if the
 * host has no memory. */
static char **block_of(const void *read, size_t wide, uint64_t count)
{
    const char *tight = read, *const *loose = read;
    size_t bytes = 0;
    char **texts, *to;

    for (uint64_t i = 0; i < count; i++)
        bytes += (wide ? wide : loose[i] ? strlen(loose[i]) : 0) + 1;
    texts = calloc(1, (count + 1) * sizeof(*texts) + bytes);
    if (!texts)
        return NULL;
    to = (char *)(texts + count + 1);
    for (uint64_t i = 0; i < count; i++) {
        const char *from = wide ? tight + i * wide : loose[i] ? loose[i] : "";
        const size_t n = wide ? strnlen(from, wide) : strlen(from);

        texts[i] = memcpy(to, from, n);
        to += n + 1;
    }
    return texts;
}

static enum frag_err read_texts(const struct attribute *a, uint64_t file_bytes,
                                char ***texts)
{
    const bool is_loose = H5Tis_variable_str(a->type) > 0;
    const size_t wide = H5Tget_size(a->type); /* of a pointer if it is loose */
    enum frag_err err = FRAG_CORRUPT;
    void *read;

    if (!wide || wide > file_bytes || a->count > file_bytes / wide)
        return FRAG_CORRUPT;
    read = calloc(a->count + 1, wide);
    if (!read)
        return FRAG_NOMEM;
    if (!a->count || H5Aread(a->id, a->type, read) >= 0) {
        *texts = block_of(read, is_loose ? 0 : wide, a->count);
        err = *texts ? FRAG_OK : FRAG_NOMEM;
    }
    for (uint64_t i = 0; is_loose && i < a->count; i++)
        H5free_memory(((char **)read)[i]);
    free(read);
    return err;
}

enum frag_err hdf5_texts(hid_t at, const char *name, uint64_t file_bytes,
                         char ***texts, uint64_t *count)
{
    struct attribute a;
    enum frag_err err = FRAG_CORRUPT;

    if (open_attribute(&a, at, name, H5T_STRING))
        err = read_texts(&a, file_bytes, texts);
    close_attribute(&a);
    if (err == FRAG_OK)
        *count = a.count;
    return err;
}

enum frag_err hdf5_text(hid_t at, const char *name, uint64_t file_bytes,
                        char **text)
{
    char **texts;
    uint64_t count;

    FRAG_TRY(hdf5_texts(at, name, file_bytes, &texts, &count));
    *text = count == 1 ? strdup(texts[0]) : NULL;
    free(texts);
    if (count != 1)
        return FRAG_CORRUPT;
    return *text ? FRAG_OK : FRAG_NOMEM;
}

/* -- messages -------------------------------------------------------------- */

/* HDF5 passes the system's error only within its texts, behind the name of the
 * file. */
static herr_t note_error(unsigned depth, const H5E_error2_t *entry, void *fault)
{
    static const char mark[] = ", errno = ";
    struct hdf5_fault *to = fault;

    (void)depth;
    for (const char *at = strstr(entry->desc, mark); at;
         at = strstr(at + 1, mark))
        to->error = atoi(at + strlen(mark));
    return 0;
}

static herr_t note_errors(hid_t stack, void *fault)
{
    return fault ? H5Ewalk2(stack, H5E_WALK_UPWARD, note_error, fault) : 0;
}

struct hdf5_quiet hdf5_quiet_begin(struct hdf5_fault *fault)
{
    struct hdf5_quiet q = {NULL, NULL};

    H5dont_atexit();
    H5Eget_auto2(H5E_DEFAULT, &q.print, &q.data);
    H5Eset_auto2(H5E_DEFAULT, note_errors, fault);
    return q;
}

void hdf5_quiet_end(struct hdf5_quiet q)
{
    H5Eset_auto2(H5E_DEFAULT, q.print, q.data);
}

enum frag_err hdf5_failed(const char *path, const char *what, int error,
                          struct frag_error *e)
{
    static const char remedy[] = "set HDF5_USE_FILE_LOCKING=FALSE";

    if (error == EWOULDBLOCK)
        return frag_fail(e, FRAG_IO,
                         "%s: another program has locked the file for writing; "
                         "wait until that program has ended, or %s",
                         path, remedy);
    if (error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP)
        return frag_fail(e, FRAG_IO,
                         "%s: the file system cannot lock the file (%s); %s",
                         path, strerror(error), remedy);
    return frag_fail(e, FRAG_IO, "%s: cannot %s it: %s", path, what,
                     error ? strerror(error) : "HDF5 failed without a reason");
}

enum frag_err hdf5_explain(const struct hdf5_fault *fault, const char *path,
                           enum frag_err err, struct frag_error *e)
{
    if (err == FRAG_CORRUPT && fault->error)
        return hdf5_failed(path, "read", fault->error, e);
    if (err == FRAG_CORRUPT && *fault->found)
        frag_fail(e, err,
                  "%s: expected all groups and data in this file, found %s; "
                  "pass a file that holds its data itself",
                  path, fault->found);
    return err;
}
