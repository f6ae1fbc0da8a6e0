/** The store of executions on a real PostgreSQL. */
import { flowEngine } from '../../src/flows/flow-engine.ts';
import { describeFlowStore } from './flow-store.ts';

describeFlowStore('PostgreSQL', flowEngine);
