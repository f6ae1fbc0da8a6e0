/** Upgrades a tenant to another engine's version. Shows a dry run first, and the outcome afterwards. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { type GatewayAnswer, gateway } from '../client.ts';
import { Command } from '../kit/command.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { Outcome } from './messages-table.tsx';
import type { Message, Tenant } from './standing.ts';
import { hasNewer, usualTarget } from './usable.ts';
import { useEngines, useMessages } from './use-tenants.ts';
import { VersionField } from './version-field.tsx';

type Upgraded = GatewayAnswer<'POST /api/tenants/{name}/upgrade'>;

/** Offered if a newer engine is installed. */
export function UpgradeAction({ tenant }: { readonly tenant: Tenant }) {
  const { data: engines } = useEngines();
  const offered = hasNewer(tenant.version, engines?.items);
  return (
    <ActionDialog label="Upgrade" title={`Upgrade ${tenant.name}`} offered={offered}>
      {(close) => <Upgrade tenant={tenant} close={close} />}
    </ActionDialog>
  );
}

interface Props {
  readonly tenant: Tenant;
  readonly close: () => void;
}

function Upgrade({ tenant: { name, version }, close }: Props) {
  const [chosen, choose] = useState('');
  // the version it had when this was opened: it changes under way
  const [from] = useState(version);
  const { data: engines } = useEngines();
  const to = chosen === '' ? (usualTarget(from, engines?.items) ?? from ?? '') : chosen;
  const upgrade = useChange({
    outdates: keys.tenants,
    change: () => gateway('POST /api/tenants/{name}/upgrade', { params: { name }, body: { to } }),
  });
  const plan = usePlan(name, to, upgrade.isIdle || upgrade.isError);
  if (upgrade.data !== undefined) return <Done name={name} upgraded={upgrade.data} close={close} />;
  const isPlanned = plan.data?.to === to && plan.error === null;
  const isThere = plan.data !== undefined && plan.data.from === plan.data.to;
  return (
    <ActionForm submit={() => upgrade.mutate()}>
      <VersionField
        now={from}
        value={to}
        change={choose}
        hint={
          <>
            Of the engines that are installed here; <Command>millrace engine add</Command> brings another.
          </>
        }
      />
      {plan.data === undefined ? null : <Plan plan={plan.data} />}
      <ActionFoot
        close={close}
        act={upgrade.isPending ? 'Upgrading…' : 'Upgrade'}
        disabled={upgrade.isPending || !isPlanned || isThere}
      >
        <InlineFailure error={upgrade.error ?? plan.error} />
      </ActionFoot>
    </ActionForm>
  );
}

/** A dry run: changes nothing, locks nothing. */
function usePlan(name: string, to: string, enabled: boolean) {
  return useQuery({
    queryKey: ['upgrade plan', name, to],
    queryFn: ({ signal }) =>
      gateway('POST /api/tenants/{name}/upgrade', { params: { name }, body: { to, dry_run: true }, signal }),
    enabled: enabled && to !== '',
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
}

function Plan({ plan: { from, to, migrations, sessions } }: { readonly plan: Upgraded }) {
  if (from === to) {
    return (
      <p className="preview" role="status">
        It is at {to} already: there is nothing to do.
      </p>
    );
  }
  return (
    <div className="preview" role="status">
      <p>
        From <strong>{from}</strong> to <strong>{to}</strong>
        {migrations.length === 0 ? ', without a change to its tables.' : ', by:'}
      </p>
      <Migrations names={migrations} />
      <p>
        All in one transaction: {leaving(sessions)} first, and its scheduler comes back at the new version. Where a step
        fails, everything is as before.
      </p>
    </div>
  );
}

function leaving(sessions: number | null): string {
  if (sessions === null || sessions === 0) return 'whoever is connected leaves';
  return sessions === 1 ? 'the one connection to it is closed' : `the ${sessions} connections to it are closed`;
}

function Migrations({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <ol className="migrations" tabIndex={0} aria-label="Migrations">
      {names.map((name) => (
        <li key={name}>
          <code>{name}</code>
        </li>
      ))}
    </ol>
  );
}

interface DoneProps {
  readonly name: string;
  readonly upgraded: Upgraded;
  readonly close: () => void;
}

function Done({ name, upgraded: { from, to, migrations, message }, close }: DoneProps) {
  return (
    <div className="action-form">
      <div className="preview" role="status">
        <p>
          Upgraded from <strong>{from}</strong> to <strong>{to}</strong>
          {migrations.length === 0 ? '.' : ', by:'}
        </p>
        <Migrations names={migrations} />
        {message === null ? null : <Follow name={name} sent={message} />}
      </div>
      <ActionFoot close={close} />
    </div>
  );
}

/** The outcome of the restart. */
function Follow({ name, sent }: { readonly name: string; readonly sent: Message }) {
  const { data } = useMessages(name, 50);
  const message = data?.items.find(({ id }) => id === sent.id) ?? sent;
  return (
    <p>
      Its scheduler: <Outcome message={message} />
    </p>
  );
}
