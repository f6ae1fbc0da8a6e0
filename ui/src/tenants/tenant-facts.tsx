/** The facts of a tenant. */
import { Fact, Facts } from '../kit/facts.tsx';
import { Age, Due } from '../time/times.tsx';
import { ProcessName } from './process-name.tsx';
import { nextTryOf, type Tenant } from './standing.ts';

export function TenantFacts({ tenant }: { readonly tenant: Tenant }) {
  const nextTryAt = nextTryOf(tenant);
  return (
    <Facts>
      <Fact term="State">{tenant.state}</Fact>
      <Fact term="Desired">{tenant.desired}</Fact>
      <Fact term="Version">{tenant.version ?? 'not installed'}</Fact>
      <Fact term="Host">
        <ProcessName of={tenant.host} /> {tenant.own_host ? <span className="tag">its own</span> : null}
      </Fact>
      {tenant.failures === 0 ? null : <Fact term="Failures in a row">{tenant.failures}</Fact>}
      {nextTryAt === null ? null : (
        <Fact term="Next try">
          <Due at={nextTryAt} />
        </Fact>
      )}
      <Fact term="Since">
        <Age at={tenant.changed_at} />
      </Fact>
      <Fact term="Made">
        <Age at={tenant.created_at} />
      </Fact>
      <Fact term="Database">
        <code>{tenant.database}</code>
      </Fact>
    </Facts>
  );
}
