import { villains } from '../../harness/villains.ts';
import { describeNeighbours } from '../neighbours.ts';

describeNeighbours(villains);
