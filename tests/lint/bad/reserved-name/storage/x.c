int __count;
struct _Entry {
    int value;
};
int __wrap_read(void);
#define __STORAGE_X
