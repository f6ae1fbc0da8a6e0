/** The engines that are installed here: which versions, whether they can be used, and who uses them. */
import { Link } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Command } from '../kit/command.tsx';
import { useTitle } from '../kit/title.ts';
import { RootOnly } from '../session/root-only.tsx';
import { TenantsHead } from './tenants-head.tsx';
import './tenants.css';
import { type Engine, useEngines } from './use-tenants.ts';

export default function EnginesPage() {
  return (
    <RootOnly>
      <Engines />
    </RootOnly>
  );
}

function Engines() {
  useTitle('Engines');
  const engines = useEngines();
  return (
    <>
      <TenantsHead title="Engines" />
      <p className="slots-about">
        Each tenant is served by the engine of the version that its database records. On the server,{' '}
        <Command>millrace engine add FOLDER</Command> (or a tarball) brings another release beside these, and{' '}
        <Command>millrace engine remove VERSION</Command> takes away what nobody uses.
      </p>
      <Answer of={engines} what="Reading engines">
        {({ items }) => <EnginesTable engines={items} />}
      </Answer>
    </>
  );
}

function EnginesTable({ engines }: { readonly engines: readonly Engine[] }) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Version</th>
          <th scope="col">State</th>
          <th scope="col" className="wide number">
            Contract
          </th>
          <th scope="col">Tenants</th>
        </tr>
      </thead>
      <tbody>
        {engines.map((engine) => (
          <tr key={engine.version}>
            <th scope="row">
              {engine.version} {engine.running ? <span className="tag">this release</span> : null}
            </th>
            <td>
              <Usable fault={engine.fault} loads={engine.loads} />
            </td>
            <td className="wide number">{engine.contract ?? '–'}</td>
            <td>
              <Users names={engine.tenants} count={engine.tenant_count} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Usable({ fault, loads }: Pick<Engine, 'fault' | 'loads'>) {
  if (fault === null && loads === null) return <span className="muted">its code is being tried</span>;
  return (
    <span className="tenant-state" data-tone={fault === null ? 'well' : 'bad'}>
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={fault === null ? 'm3 8.6 3.4 3.4L13 4.5' : 'M8 2.5 14 13H2ZM8 6.6v2.8M8 11.2h.01'} />
      </svg>
      {fault === null ? 'usable' : fault}
    </span>
  );
}

const named = 12;

function Users({ names, count }: { readonly names: readonly string[]; readonly count: number }) {
  if (names.length === 0) return <span className="muted">none</span>;
  return (
    <span className="engine-users">
      {names.slice(0, named).map((name) => (
        <Link key={name} href={`/tenants/${encodeURIComponent(name)}`}>
          {name}
        </Link>
      ))}
      {count > named ? <span className="muted">and {count - Math.min(named, names.length)} more</span> : null}
    </span>
  );
}
