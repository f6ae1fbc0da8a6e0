/** One tenant: whether its scheduler runs and why, its actions, and its messages to the launcher. */
import { Link } from 'wouter';
import { homeOf } from '../client.ts';
import { Next } from '../explain/explanation.tsx';
import { Answer } from '../kit/answer.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { useTitle } from '../kit/title.ts';
import { RootOnly } from '../session/root-only.tsx';
import { DropAction, ReleaseAction } from './end-tenant.tsx';
import { MessagesTable } from './messages-table.tsx';
import { OwnHostAction } from './own-host.tsx';
import { RenameAction } from './rename.tsx';
import { isClosed, isInstalled, sentenceWords, type Tenant } from './standing.ts';
import { TenantActions } from './tenant-actions.tsx';
import { TenantFacts } from './tenant-facts.tsx';
import { TenantState } from './tenant-state.tsx';
import { useMessages, useTenant, useTenantWhy } from './use-tenants.ts';

export default function TenantPage({ name }: { readonly name: string }) {
  return (
    <RootOnly>
      <TenantBody name={name} />
    </RootOnly>
  );
}

function TenantBody({ name }: { readonly name: string }) {
  useTitle(name);
  const tenant = useTenant(name);
  return (
    <>
      <nav className="crumbs" aria-label="Where this is">
        <Link href="/tenants">Tenants</Link>
      </nav>
      <Answer of={tenant} what="Reading the tenant">
        {(data) => (
          <>
            <header className="page-head">
              <h1>{data.name}</h1>
              <span role="status">
                <TenantState tenant={data} />
              </span>
              <TenantActions tenant={data} />
            </header>
            <Why name={name} />
            <TenantFacts tenant={data} />
            <Messages name={name} />
            <Changes tenant={data} />
          </>
        )}
      </Answer>
    </>
  );
}

/** State and explanation are read separately, so that neither waits for the other. */
function Why({ name }: { readonly name: string }) {
  const { data: why, error } = useTenantWhy(name, { watched: true });
  if (why === undefined) return <InlineFailure error={error} />;
  return (
    <section className="tenant-why" aria-label="Why">
      <p>{sentenceWords(why.sentence)}</p>
      {why.advice === null ? null : <Next next={why.advice} label="What to do" />}
      {isClosed(why.reason_code) ? null : (
        <p>
          {/* another tenant's pages are another app as far as addresses go */}
          <a href={homeOf(name)}>Its jobs and runs</a>
        </p>
      )}
    </section>
  );
}

const listed = 50;

function Messages({ name }: { readonly name: string }) {
  const messages = useMessages(name, listed);
  return (
    <section className="tenant-part" aria-labelledby="messages">
      <h2 id="messages">Messages to the launcher</h2>
      <Answer of={messages} what="Reading messages">
        {({ items }) =>
          items.length === 0 ? (
            <p className="muted">None. The launcher starts what is desired without being asked.</p>
          ) : (
            <MessagesTable messages={items} />
          )
        }
      </Answer>
    </section>
  );
}

function Changes({ tenant }: { readonly tenant: Tenant }) {
  return (
    <section className="tenant-part" aria-labelledby="changes">
      <h2 id="changes">Change it</h2>
      {tenant.name === 'default' ? (
        <p className="muted">
          This is the tenant of all addresses without a prefix: it keeps its name, and can be neither released nor
          dropped.
        </p>
      ) : null}
      <div className="tenant-changes">
        <OwnHostAction tenant={tenant} />
        {tenant.name === 'default' ? null : (
          <>
            <RenameAction tenant={tenant} />
            {isInstalled(tenant) ? <ReleaseAction tenant={tenant} /> : null}
            <DropAction tenant={tenant} />
          </>
        )}
      </div>
    </section>
  );
}
