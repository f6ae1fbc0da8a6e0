/** The initial text of a new flow: a small example that needs no worker and no function, so that it can be started at once. */
export const exampleFlow = `flow: my-flow
description: What it is for
steps:
- task: approve
  human:
    team: everybody
    title: $(f.what) for $(f.amount)
    form: {approved: boolean, comment: {type: text, required: false}}
  result: f.decision
  timeout: 7d
- if: f.decision.approved
  then: [{wait: 10s}, {set: {f.state: paid}}]
  else: [{set: {f.state: refused}}]
`;
