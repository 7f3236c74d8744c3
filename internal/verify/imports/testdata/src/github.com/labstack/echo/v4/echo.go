package echo
