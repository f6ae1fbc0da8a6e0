/** Version and settings of the installation. They cannot be changed here, because they come from the process's environment. */
import type { GatewayAnswer } from '../client.ts';

type Installation = GatewayAnswer<'GET /api/installation'>;

export function InstallationTable({ installation }: { readonly installation: Installation }) {
  const { version, node, database, couriers, warnings, settings } = installation;
  return (
    <section aria-labelledby="installation">
      <h2 id="installation">Installation</h2>
      <p className="muted">
        Millrace {version} on Node {node}, PostgreSQL {database.version}. <a href="/docs">API documentation</a>
      </p>
      {couriers.length === 0 ? null : (
        <p className="muted">
          {couriers.length === 1 ? 'One courier delivers' : `${couriers.length} couriers deliver`} events:{' '}
          {couriers.map(({ machine, version: running }) => `${machine} (${running})`).join(', ')}
        </p>
      )}
      {warnings.map((warning) => (
        <p key={warning} role="status">
          {warning}
        </p>
      ))}
      {database.slow.length === 0 ? null : (
        <ul aria-label="Settings of PostgreSQL that cost speed">
          {database.slow.map(({ name, value, advice }) => (
            <li key={name}>
              <code>
                {name} = {value}
              </code>{' '}
              costs speed. {advice}
            </li>
          ))}
        </ul>
      )}
      {settings === null ? null : (
        <table className="table settings-table">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Value</th>
              <th scope="col" className="wide">
                About
              </th>
            </tr>
          </thead>
          <tbody>
            {settings.map(({ name, value, set, about }) => (
              <tr key={name}>
                <th scope="row">
                  <code>{name}</code>
                </th>
                <td>
                  {value === null ? (
                    <span className="muted">{set ? 'hidden' : 'not set'}</span>
                  ) : (
                    <code>{value === '' ? '–' : value}</code>
                  )}{' '}
                  {set ? <span className="tag">set</span> : null}
                </td>
                <td className="wide muted">{about}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
