package main // want `doccomment/package: package main has no package comment`

func main() {}
