package tenant_test

import _ "entrega/jobs"
