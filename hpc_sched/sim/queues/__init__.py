"""Queue disciplines: which waiting job starts next."""
