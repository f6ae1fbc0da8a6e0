/** All tenants: which run, which do not and why. Which are shown is in the address (`?show=`, `?q=`). */
import { ActionDialog } from '../actions/action-dialog.tsx';
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { Command } from '../kit/command.tsx';
import { Empty } from '../kit/empty.tsx';
import { SearchField } from '../kit/search-field.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import { RootOnly } from '../session/root-only.tsx';
import { NewTenant } from './new-tenant.tsx';
import { needsLook, type Tenant, toneOf } from './standing.ts';
import { TenantsHead } from './tenants-head.tsx';
import { TenantsTable } from './tenants-table.tsx';
import { useTenants } from './use-tenants.ts';

export default function TenantsPage() {
  return (
    <RootOnly>
      <Tenants />
    </RootOnly>
  );
}

const choices = [
  { value: 'all', label: 'All' },
  { value: 'running', label: 'Running' },
  { value: 'off', label: 'Switched off' },
  { value: 'look', label: 'Need a look' },
] as const;
type Show = (typeof choices)[number]['value'];

const fits: Readonly<Record<Show, (tenant: Tenant) => boolean>> = {
  all: () => true,
  running: (tenant) => toneOf(tenant) === 'well',
  off: ({ desired }) => desired === 'off',
  look: needsLook,
};

function Tenants() {
  useTitle('Tenants');
  const tenants = useTenants();
  const [question, ask] = useUrlState('q');
  return (
    <>
      <TenantsHead title="Tenants">
        <SearchField label="Find a tenant" value={question} change={ask} />
        <ActionDialog label="New tenant" title="New tenant" kind="primary">
          {(close) => <NewTenant close={close} />}
        </ActionDialog>
      </TenantsHead>
      <Answer of={tenants} what="Reading tenants">
        {({ items }) => (items.length === 0 ? <NoTenants /> : <Found all={items} question={question} />)}
      </Answer>
    </>
  );
}

function Found({ all, question }: { readonly all: readonly Tenant[]; readonly question: string }) {
  const [asked, choose] = useUrlState('show', 'all');
  const show = choices.find(({ value }) => value === asked)?.value ?? 'all';
  const q = question.trim().toLowerCase();
  const shown = all.filter((tenant) => fits[show](tenant) && tenant.name.toLowerCase().includes(q));
  return (
    <>
      <div className="bar">
        <Choice label="Which tenants" options={choices} value={show} change={choose} />
        <p className="page-count" role="status">
          {summaryOf(all)}
        </p>
      </div>
      {shown.length === 0 ? <Empty title="No such tenants" /> : <TenantsTable tenants={shown} />}
    </>
  );
}

function summaryOf(tenants: readonly Tenant[]): string {
  const running = tenants.filter(fits.running).length;
  return `${running} of ${tenants.length} running`;
}

function NoTenants() {
  return (
    <Empty title="No tenants yet">
      <p>
        A tenant is a database of its own, with jobs, runs and keys that no other tenant sees. Make one here, or with{' '}
        <Command>millrace tenant create NAME</Command>.
      </p>
    </Empty>
  );
}
