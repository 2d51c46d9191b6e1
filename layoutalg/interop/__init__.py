"""Reading and writing layouts in other systems' terms; nothing here imports those systems."""
