package onlytests

func Setup() {}
