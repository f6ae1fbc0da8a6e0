/** Which page stands at which address. All but the sign-in page are behind the gate and inside the shell. */
import { Redirect, Route, Router, Switch } from 'wouter';
import { tenantBase } from '../client.ts';
import { EventsPage } from '../events/events-page.tsx';
import { JobPage } from '../jobs/job-page.tsx';
import { JobsPage } from '../jobs/jobs-page.tsx';
import { Boundary } from '../kit/boundary.tsx';
import { NotFound } from '../kit/not-found.tsx';
import { LiveProvider } from '../live/live.tsx';
import { RunPage } from '../runs/run-page.tsx';
import { Gate } from '../session/gate.tsx';
import { SignInPage } from '../session/sign-in-page.tsx';
import { Shell } from './shell.tsx';

export function App() {
  return (
    <Router base={tenantBase}>
      <Switch>
        <Route path="/signin" component={SignInPage} />
        <Route>
          <Gate>
            <LiveProvider>
              <Shell>
                <Boundary>
                  <Pages />
                </Boundary>
              </Shell>
            </LiveProvider>
          </Gate>
        </Route>
      </Switch>
    </Router>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/">
        <Redirect to="/jobs" replace />
      </Route>
      <Route path="/jobs" component={JobsPage} />
      {/* a key for each id: another job is another page, with nothing left over of the one before */}
      <Route path="/jobs/:id">{({ id }) => <JobPage key={id} id={id} />}</Route>
      <Route path="/runs/:id">{({ id }) => <RunPage key={id} id={id} />}</Route>
      <Route path="/events" component={EventsPage} />
      <Route component={NotFound} />
    </Switch>
  );
}
