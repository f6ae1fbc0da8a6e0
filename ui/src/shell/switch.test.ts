import { expect, test } from 'vitest';
import { findTenants, pageIn } from './switch.ts';

test('the same page of another tenant, with what the address asks of any', () => {
  expect(pageIn('/t/acme/', '/', '')).toBe('/t/acme/');
  expect(pageIn('/', '/', '')).toBe('/');
  expect(pageIn('/t/acme/', '/jobs', 'show=failing&q=a+b')).toBe('/t/acme/jobs?show=failing&q=a+b');
  expect(pageIn('/t/acme/', '/jobs/new', '')).toBe('/t/acme/jobs/new');
  expect(pageIn('/t/acme/', '/workers/123', '')).toBe('/t/acme/workers/123');
  expect(pageIn('/t/acme/', '/tenants/beta', '')).toBe('/t/acme/tenants/beta');
});

test('what only this tenant has leads to the list it is of', () => {
  expect(pageIn('/t/acme/', '/jobs/123/grid', 'task=4')).toBe('/t/acme/jobs');
  expect(pageIn('/', '/runs/123', 'view=why')).toBe('/runs');
  expect(pageIn('/t/acme/', '/projects/1', '')).toBe('/t/acme/projects');
  expect(pageIn('/t/acme/', '/runs', 'state=failed&job=1&cursor=x')).toBe('/t/acme/runs?state=failed');
});

test('a tenant is found by a part of its name, by its beginning first', () => {
  const tenants = ['shop-acme', 'acme', 'beta'].map((name) => ({ name }));
  expect(findTenants(tenants, ' ACM ').map(({ name }) => name)).toEqual(['acme', 'shop-acme']);
  expect(findTenants(tenants, '')).toEqual(tenants);
});
