#include "storage/acked_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* The file: these 8 bytes, the position, and the check over both; numbers are little-endian. */
#define MAGIC "dwacked1"

struct image {
    char magic[8];
    uint64_t position;
    uint64_t check;
};

static void encode(uint64_t position, struct image *image)
{
    memcpy(image->magic, MAGIC, sizeof image->magic);
    image->position = htole64(position);
    image->check = htole64(XXH3_64bits(image, offsetof(struct image, check)));
}

static bool decode(const struct image *image, uint64_t *position)
{
    *position = le64toh(image->position);
    return memcmp(image->magic, MAGIC, sizeof image->magic) == 0 &&
           le64toh(image->check) == XXH3_64bits(image, offsetof(struct image, check));
}

static enum dw_error fail_io(const char *directory, const char *what, char *text, size_t text_size)
{
    snprintf(text, text_size, "%s/ACKED cannot be %s: %s: let this user read and write it, and start again",
             directory, what, strerror(errno));
    return DW_ERR_IO;
}

static enum dw_error read_position(const char *directory, struct dw_acked_file *file, char *text,
                                   size_t text_size)
{
    struct image image;
    struct stat status;
    ssize_t got = pread(file->fd, &image, sizeof image, 0);
    if (got < 0 || fstat(file->fd, &status) != 0) {
        return fail_io(directory, "read", text, text_size);
    }
    file->blank = status.st_size == 0;
    if (file->blank) {
        return DW_OK;
    }
    if (got != sizeof image || status.st_size != sizeof image || !decode(&image, &file->position)) {
        snprintf(text, text_size, DW_ACKED_DAMAGED, directory);
        return DW_ERR_CORRUPT;
    }
    file->present = true;
    return DW_OK;
}

/* The file, and so as a rule its whole directory, was removed: what is written there from now on is lost. */
static bool is_removed(const struct dw_acked_file *file)
{
    struct stat status;
    return fstat(file->fd, &status) == 0 && status.st_nlink == 0;
}

enum dw_error dw_acked_file_open(const char *directory, struct dw_acked_file *file, char *text,
                                 size_t text_size)
{
    *file = (struct dw_acked_file){.fd = -1};
    file->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->directory_fd < 0) {
        snprintf(text, text_size, "%s cannot be opened as a directory: %s: give one that can be, or none yet",
                 directory, strerror(errno));
        return DW_ERR_IO;
    }
    enum dw_error error = DW_OK;
    file->made = faccessat(file->directory_fd, "ACKED", F_OK, 0) != 0;
    file->fd = openat(file->directory_fd, "ACKED", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file->fd < 0) {
        file->made = false;
        error = fail_io(directory, "opened", text, text_size);
    } else if (flock(file->fd, LOCK_EX | LOCK_NB) != 0) {
        file->made = false;
        snprintf(text, text_size, "%s is in use by another process: stop it, or give another directory",
                 directory);
        error = DW_ERR_LOCKED;
    } else if (is_removed(file)) {
        /* Between opening and locking, by another start that failed. */
        file->made = false;
        snprintf(text, text_size, "%s/ACKED was removed just now: start again", directory);
        error = DW_ERR_LOCKED;
    } else if (!file->made) {
        error = read_position(directory, file, text, text_size);
    }
    if (error != DW_OK) {
        dw_acked_file_close(file);
    }
    return error;
}

enum dw_error dw_acked_file_write(struct dw_acked_file *file, uint64_t position)
{
    struct image image;
    encode(position, &image);
    ssize_t put = pwrite(file->fd, &image, sizeof image, 0);
    if (put != sizeof image) {
        errno = put < 0 ? errno : ENOSPC;
        return DW_ERR_IO;
    }
    if (is_removed(file)) {
        errno = ENOENT;
        return DW_ERR_IO;
    }
    file->present = true;
    file->position = position;
    return DW_OK;
}

enum dw_error dw_acked_file_sync(struct dw_acked_file *file)
{
    return fsync(file->fd) == 0 && fsync(file->directory_fd) == 0 ? DW_OK : DW_ERR_IO;
}

void dw_acked_file_close(struct dw_acked_file *file)
{
    if (file->made && !file->present) {
        (void)unlinkat(file->directory_fd, "ACKED", 0);
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    if (file->directory_fd >= 0) {
        close(file->directory_fd);
    }
    *file = (struct dw_acked_file){.fd = -1, .directory_fd = -1};
}
