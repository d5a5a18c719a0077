#ifndef DW_STORAGE_NONE_H
#define DW_STORAGE_NONE_H
#endif
