"""Queue disciplines: which waiting job starts next, one file each."""
