package main

import "os"

func main() {
	os.Getenv("DATABASE_URL") // want `boundary/environment`
}
