package templ
