package storetest

import "os"

// Cluster may follow the developer's machine.
func Cluster() string { return os.Getenv("DATABASE_URL") }
