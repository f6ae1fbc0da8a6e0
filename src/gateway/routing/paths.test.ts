import { expect, it } from 'vitest';
import { isMachinePath, isTenantPath } from './paths.ts';

it.each([
  ['/api', true, false],
  ['/api/jobs', true, true],
  ['/api/', true, true],
  ['/int-api/tasks', true, true],
  ['/bus', true, false],
  ['/bus/topics/x', true, true],
  ['/internal/claim', true, false],
  ['/t/shop/api/jobs', true, false],
  ['/healthz', true, false],
  ['/readyz', true, false],
  ['/metrics', true, false],
  ['/healthcheck', true, true],
  ['/healthcheck/x', true, false],
  ['/openapi.json', true, false],
  ['/docs', true, false],
  ['/', false, false],
  ['/jobs', false, false],
  ['/apis/jobs', false, false],
])('%s is a machine path: %s, a tenant path: %s', (path, isMachine, isTenant) => {
  expect([isMachinePath(path), isTenantPath(path)]).toEqual([isMachine, isTenant]);
});
