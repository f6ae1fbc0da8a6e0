/** Tenants, one in a line: state and reason, at which version, where it runs, since when. */
import { Link } from 'wouter';
import { Age } from '../time/times.tsx';
import { ProcessName } from './process-name.tsx';
import type { Tenant } from './standing.ts';
import { Reason, TenantState } from './tenant-state.tsx';

export function TenantsTable({ tenants }: { readonly tenants: readonly Tenant[] }) {
  return (
    <table className="table tenants-table">
      <thead>
        <tr>
          <th scope="col">Tenant</th>
          <th scope="col">Standing</th>
          <th scope="col">Why</th>
          <th scope="col" className="wide">
            State
          </th>
          <th scope="col" className="wide">
            Version
          </th>
          <th scope="col" className="wide">
            Database
          </th>
          <th scope="col" className="wide">
            Host
          </th>
          <th scope="col" className="wide">
            Since
          </th>
        </tr>
      </thead>
      <tbody>
        {tenants.map((tenant) => (
          <Row key={tenant.id} tenant={tenant} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ tenant }: { readonly tenant: Tenant }) {
  return (
    <tr>
      <th scope="row">
        <Link href={`/tenants/${encodeURIComponent(tenant.name)}`}>{tenant.name}</Link>
      </th>
      <td>
        <TenantState tenant={tenant} />
      </td>
      <td className="tenant-reason muted">
        <Reason tenant={tenant} />
      </td>
      <td className="tenant-launch wide muted">{tenant.state}</td>
      <td className="wide muted">{tenant.version ?? '–'}</td>
      <td className="tenant-database wide muted">{tenant.database}</td>
      <td className="wide">
        <ProcessName of={tenant.host} /> {tenant.own_host ? <span className="tag">its own</span> : null}
      </td>
      <td className="wide muted">
        <Age at={tenant.changed_at} />
      </td>
    </tr>
  );
}
