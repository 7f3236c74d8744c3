package tenant
