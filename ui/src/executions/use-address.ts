/** The filters of the list of executions, as its address has them. */
import { useSearchParams } from 'wouter';
import { parseInstant } from '../actions/instant-text.ts';
import { withChanges } from '../kit/url-state.ts';
import { statusChoice } from './status-choices.ts';
import type { ExecutionFilter } from './use-executions.ts';

const texts = ['flow', 'version', 'status', 'label', 'key', 'parent', 'after', 'before', 'cursor'] as const;

/** Each as text; empty where the address has none. */
export type Asked = Readonly<Record<(typeof texts)[number], string>>;

export function useAddress() {
  const [search, setSearch] = useSearchParams();
  const asked = Object.fromEntries(texts.map((name) => [name, search.get(name) ?? ''])) as Asked;
  // another filter is another list: it begins at its newest
  const change = (values: Partial<Asked>): void =>
    setSearch((old) => withChanges(old, { ...values, cursor: '' }), { replace: true });
  const href = (values: Partial<Asked>): string => `/executions?${withChanges(search, { ...values })}`;
  return { asked, change, href };
}

/** The filter as the server takes it. Texts that mean nothing, such as half a time, are left out. */
export function filterOf({ flow, version, status, label, key, after, before }: Asked): ExecutionFilter {
  const given = {
    flow: flow || undefined,
    version: /^[1-9]\d{0,8}$/.test(version) ? Number(version) : undefined,
    status: statusChoice(status).statuses,
    label: label.indexOf(':') > 0 ? label : undefined,
    key: key.trim() || undefined,
    created_after: parseInstant(after),
    created_before: parseInstant(before),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
