// Good is a command.
package main

func Exported() {}

func main() {}
