package mailer_test

import "entrega/internal/store"

func page() store.Page { return store.Page{} }
