package static
