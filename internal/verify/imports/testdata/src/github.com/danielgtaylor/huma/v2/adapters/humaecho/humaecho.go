package humaecho
