#ifdef DW_CORNUS
int one;
#elif defined(TWO_PHASE)
int two;
#endif
#if PROTOCOL == 2
#endif
#ifndef ROCKSDB_STORE
#endif
