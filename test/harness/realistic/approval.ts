/** A flow that is like the one of the tutorial. Its function `invoice` (`flow-functions.mjs`) fails, because there is no mail in its folder. */
export const approval = `flow: approval
description: A manager decides
steps:
- task: approve
  human: {assignee: $(f.manager), title: Expense $(f.id), form: {approved: boolean, comment: text}}
  result: f.decision
- if: f.decision.approved
  then: [{task: invoice, with: {to: bank, folder: /nowhere}, result: f.payment}]
  else: [{task: tell, with: {why: $(f.decision.comment)}}]
- wait: {on: {signal: booked}}
  result: f.booking
- set: {f.closed: true}
`;
