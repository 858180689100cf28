// A server of known capacity, not ours: `places` requests at a time, each for exactly `service` ms,
// the rest wait in the order they came. OpenAI-like chat streams of four tokens, all at the end of
// the service, so that TTFT is the wait plus the service. Capacity: places / service.
//
//   node capacity_server.mjs PLACES SERVICE_MS      prints "listening on URL" on stderr
import http from 'node:http';

const [places, serviceMs] = process.argv.slice(2).map(Number);
const queue = [];
let busy = 0;

const event = (data) => `data: ${JSON.stringify(data)}\n\n`;
const chunk = (content, finish = null) => event({
  id: 'c', object: 'chat.completion.chunk', model: 'm',
  choices: [{ index: 0, delta: content === null ? {} : { content }, finish_reason: finish }],
});
const usage = event({
  id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [],
  usage: { prompt_tokens: 1, completion_tokens: 4, total_tokens: 5 },
});

// Deadlines follow each other, so that a timer's lateness is not added to the next service.
function serve(response, begin) {
  const end = begin + serviceMs;
  setTimeout(() => {
    for (let i = 0; i < 4; ++i) response.write(chunk('x'));
    response.end(chunk(null, 'stop') + usage + 'data: [DONE]\n\n');
    const next = queue.shift();
    if (next) serve(next, Math.max(end, performance.now() - 5));
    else --busy;
  }, end - performance.now());
}

const server = http.createServer((request, response) => {
  if (request.method === 'GET') {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model', owned_by: 'test' }] }));
    return;
  }
  request.resume();
  request.on('end', () => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    if (busy >= places) {
      queue.push(response);
      return;
    }
    ++busy;
    serve(response, performance.now());
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${server.address().port}`));
