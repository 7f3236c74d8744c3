package tenant

import _ "entrega/jobs" // want `imports/direction: .*`
