/** Facts about tenants that every room may use. */

/** The tenant that every installation has. Paths without a tenant refer to it. */
export const defaultTenant = 'default';
