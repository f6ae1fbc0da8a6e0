/** What everybody knows of tenants without asking. */

/** The one that an installation always has, and that paths without a tenant mean. */
export const defaultTenant = 'default';
