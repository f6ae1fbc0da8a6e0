/** Finds anything by name or id, and goes there: type, choose with the arrows, Enter. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { homeOf, type TenantAnswer, tenant, tenantName } from '../client.ts';
import { Dialog } from '../kit/dialog.tsx';
import './dialogs.css';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { useIsRoot } from '../session/root-only.tsx';
import { useTenantList } from '../tenants/use-tenants.ts';
import { usePlaces } from './navigation.tsx';
import { findTenants, pageIn } from './switch.ts';

type Hit = TenantAnswer<'GET /api/search'>['items'][number];

interface Found {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly where: string;
  readonly to: string;
  /** To another tenant's pages, which are another app as far as addresses go. */
  readonly leaves?: true;
}

const pages: Readonly<Record<Hit['kind'], (hit: Hit) => string>> = {
  project: ({ id }) => `/projects/${id}`,
  job: ({ id }) => `/jobs/${id}`,
  task: ({ id, job }) => `/jobs/${job?.id}?task=${id}`,
  trigger: ({ job }) => `/jobs/${job?.id}/triggers`,
  backfill: ({ id, job }) => `/jobs/${job?.id}/backfills?backfill=${id}`,
  run: ({ id }) => `/runs/${id}`,
  worker: ({ id }) => `/workers/${id}`,
  flow: ({ name }) => `/flows/${encodeURIComponent(name)}`,
  execution: ({ id }) => `/executions/${id}`,
};

function foundOf(hit: Hit): Found {
  const where = hit.job === null ? (hit.project?.name ?? '') : `${hit.job.project}/${hit.job.name}`;
  return { id: hit.id, kind: hit.kind, name: hit.name, where, to: pages[hit.kind](hit) };
}

/** Places of the house that begin with the question, then what the server finds. */
interface Search {
  readonly items: readonly Found[];
  readonly error: Error | null;
  /** Whether the results belong to the present query, and not to the one before. */
  readonly isSettled: boolean;
}

function useFound(question: string): Search {
  const q = question.trim();
  const { data, error, isPlaceholderData, isFetching } = useQuery({
    queryKey: [...keys.search, q],
    queryFn: ({ signal }) => tenant('GET /api/search', { query: { q }, signal }),
    enabled: q !== '',
    staleTime: 0,
    placeholderData: keepPreviousData,
  });
  const places = usePlaces()
    .flat()
    .filter(({ label }) => label.toLowerCase().startsWith(q.toLowerCase()))
    .map(({ to, label }): Found => ({ id: to, kind: 'page', name: label, where: '', to }));
  const tenants = useOtherTenants(q);
  const found = (data?.items ?? []).map(foundOf);
  // last, because Enter takes the first result, and must not leave this tenant by accident
  const rest = switching.test(q) ? [...tenants, ...found] : [...found, ...tenants];
  const items = q === '' ? places : [...places, ...rest];
  return { items, error, isSettled: q === '' || (!isPlaceholderData && !isFetching) };
}

/** More are found by typing more. */
const mostTenants = 5;
const switching = /^switch( to)?( tenant)? ?/i;

/** For root: the same page of another tenant, by its name or by `switch to …`. */
function useOtherTenants(q: string): readonly Found[] {
  const { data } = useTenantList(useIsRoot());
  const [path] = useLocation();
  const search = useSearch();
  const others = (data?.items ?? []).filter(({ name }) => name !== tenantName);
  return findTenants(others, q.replace(switching, ''))
    .slice(0, mostTenants)
    .map(({ name }) => ({
      id: name,
      kind: 'tenant',
      name: `Switch to tenant ${name}`,
      where: '',
      to: pageIn(homeOf(name), path, search),
      leaves: true,
    }));
}

export function SearchDialog({ close }: { readonly close: () => void }) {
  const [question, ask] = useState('');
  const [chosen, choose] = useState(0);
  const asked = useDeferredValue(question);
  const { items, error, isSettled } = useFound(asked);
  const isAnswered = isSettled && asked === question;
  const [, navigate] = useLocation();
  const id = useId();
  const at = Math.min(chosen, items.length - 1);
  const open = (found: Found | undefined): void => {
    if (found === undefined) return;
    close();
    if (found.leaves === true) location.assign(found.to);
    else navigate(found.to);
  };
  // Enter may come before the answer does
  const [isWished, wish] = useState(false);
  useEffect(() => {
    if (!isWished || !isAnswered) return;
    wish(false);
    open(items[at]);
  });
  const press = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) choose(Math.max(0, Math.min(items.length - 1, at + by)));
    else if (event.key === 'Enter') wish(true);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Search" close={close}>
      <input
        className="search-input"
        type="text"
        role="combobox"
        aria-label="Search by name or id"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={at < 0 ? undefined : `${id}-${at}`}
        placeholder="Project, job, task, trigger, or an id"
        spellCheck={false}
        autoComplete="off"
        value={question}
        onChange={(event) => {
          ask(event.currentTarget.value);
          choose(0);
        }}
        onKeyDown={press}
      />
      <InlineFailure error={error} />
      {items.length === 0 && isAnswered && error === null ? (
        <p className="muted">Nothing has that name or id.</p>
      ) : null}
      <div id={id} role="listbox" aria-label="Found" className="search-found">
        {items.map((found, i) => (
          <Option key={`${found.kind} ${found.id}`} id={`${id}-${i}`} found={found} isChosen={i === at} open={open} />
        ))}
      </div>
    </Dialog>
  );
}

interface OptionProps {
  readonly id: string;
  readonly found: Found;
  readonly isChosen: boolean;
  readonly open: (found: Found) => void;
}

function Option({ id, found, isChosen, open }: OptionProps) {
  return (
    // the combobox keeps the focus; keys are its business
    <div
      id={id}
      role="option"
      aria-selected={isChosen}
      tabIndex={-1}
      ref={(element) => {
        if (isChosen) element?.scrollIntoView({ block: 'nearest' });
      }}
      onClick={() => open(found)}
    >
      <span className="search-kind">{found.kind}</span>
      <span className="search-name">{found.name}</span>
      <span className="muted">{found.where}</span>
    </div>
  );
}
