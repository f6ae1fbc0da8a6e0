/** The routes: which address shows which page. All but the sign-in page are behind the gate and inside the shell. */
import { type ComponentType, lazy, Suspense } from 'react';
import { Route, Router, Switch } from 'wouter';
import { tenantBase } from '../client.ts';
import { HomePage } from '../home/home-page.tsx';
import { JobPage } from '../job/job-page.tsx';
import { JobsPage } from '../jobs/jobs-page.tsx';
import { ProjectPage } from '../jobs/project-page.tsx';
import { Boundary } from '../kit/boundary.tsx';
import { Loading } from '../kit/loading.tsx';
import { NotFound } from '../kit/not-found.tsx';
import { LiveProvider } from '../live/live.tsx';
import { Gate } from '../session/gate.tsx';
import { SignInPage } from '../session/sign-in-page.tsx';
import { AccessProvider } from '../tenants/access.tsx';
import { Shell } from './shell.tsx';

export function App() {
  return (
    <Router base={tenantBase}>
      <Switch>
        <Route path="/signin" component={SignInPage} />
        <Route path="/answers/:token">{({ token }) => <LoneAnswerPage token={token} />}</Route>
        <Route>
          <Gate>
            <AccessProvider>
              <LiveProvider>
                <Shell>
                  <Boundary>
                    <Suspense fallback={<Loading what="Opening the page" />}>
                      <Pages />
                    </Suspense>
                  </Boundary>
                </Shell>
              </LiveProvider>
            </AccessProvider>
          </Gate>
        </Route>
      </Switch>
    </Router>
  );
}

/** Behind a link that needs no key: without the gate, and without any call but its own. */
function LoneAnswerPage({ token }: { readonly token: string }) {
  return (
    <Suspense fallback={<Loading what="Opening the page" />}>
      <AnswerPage token={token} />
    </Suspense>
  );
}

/** Pages that are rarely opened first are loaded on demand. Each id has its own key, so that another id is a new page. */
const RunPage = lazy(() => import('../runs/run-page.tsx'));
const NewJobPage = lazy(() => import('../job/definition/new-job-page.tsx'));
const WorkerPage = lazy(() => import('../fleet/worker-page.tsx'));
const SubscriberPage = lazy(() => import('../bus/subscriber-page.tsx'));
const AnswerPage = lazy(() => import('../answer/answer-page.tsx'));
const NewFlowPage = lazy(() => import('../flows/new-flow-page.tsx'));
const FlowPage = lazy(() => import('../flows/flow-page.tsx'));
const ExecutionPage = lazy(() => import('../executions/execution-page.tsx'));
const TenantPage = lazy(() => import('../tenants/tenant-page.tsx'));

const further: readonly (readonly [path: string, Page: ComponentType])[] = [
  ['/projects', lazy(() => import('../jobs/projects-page.tsx'))],
  ['/runs', lazy(() => import('../runs/runs-page.tsx'))],
  ['/topics', lazy(() => import('../bus/topics-page.tsx'))],
  ['/subscribers', lazy(() => import('../bus/subscribers-page.tsx'))],
  ['/dead-letters', lazy(() => import('../bus/dead-letters-page.tsx'))],
  ['/errands', lazy(() => import('../bus/errands-page.tsx'))],
  ['/flows', lazy(() => import('../flows/flows-page.tsx'))],
  ['/executions', lazy(() => import('../executions/executions-page.tsx'))],
  ['/workitems', lazy(() => import('../workitems/workitems-page.tsx'))],
  ['/workers', lazy(() => import('../fleet/workers-page.tsx'))],
  ['/schedulers', lazy(() => import('../fleet/schedulers-page.tsx'))],
  ['/audit', lazy(() => import('../admin/audit-page.tsx'))],
  ['/tenants', lazy(() => import('../tenants/tenants-page.tsx'))],
  ['/slots', lazy(() => import('../launcher/slots-page.tsx'))],
  ['/engines', lazy(() => import('../tenants/engines-page.tsx'))],
  ['/launcher', lazy(() => import('../launcher/launcher-page.tsx'))],
  ['/keys', lazy(() => import('../admin/keys-page.tsx'))],
  ['/settings', lazy(() => import('../admin/settings-page.tsx'))],
];

function Pages() {
  return (
    <Switch>
      <Route path="/" component={HomePage} />
      <Route path="/jobs" component={JobsPage} />
      <Route path="/jobs/new" component={NewJobPage} />
      <Route path="/projects/:id">{({ id }) => <ProjectPage key={id} id={id} />}</Route>
      <Route path="/jobs/:id/:view?">{({ id, view }) => <JobPage key={id} id={id} view={view} />}</Route>
      <Route path="/runs/:id">{({ id }) => <RunPage key={id} id={id} />}</Route>
      <Route path="/flows/new" component={NewFlowPage} />
      <Route path="/flows/:name/:view?">{({ name, view }) => <FlowPage key={name} name={name} view={view} />}</Route>
      <Route path="/executions/:id">{({ id }) => <ExecutionPage key={id} id={id} />}</Route>
      <Route path="/workers/:id">{({ id }) => <WorkerPage key={id} id={id} />}</Route>
      <Route path="/subscribers/:id">{({ id }) => <SubscriberPage key={id} id={id} />}</Route>
      <Route path="/tenants/:name">{({ name }) => <TenantPage key={name} name={name} />}</Route>
      {further.map(([path, Page]) => (
        <Route key={path} path={path} component={Page} />
      ))}
      <Route component={NotFound} />
    </Switch>
  );
}
