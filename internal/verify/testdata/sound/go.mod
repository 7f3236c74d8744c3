module entrega

go 1.26.0
