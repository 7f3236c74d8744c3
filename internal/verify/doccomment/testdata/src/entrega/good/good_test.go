package good

func Setup() {}
