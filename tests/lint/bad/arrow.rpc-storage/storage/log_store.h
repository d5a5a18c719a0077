/* log_store.h - a header. */
