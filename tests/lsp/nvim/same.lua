-- The run of tests/fixtures/editors in headless Neovim: a plain client, no Daiku code of its own.
-- DAIKU_TEST_COMMAND is a JSON list, DAIKU_TEST_WORKSPACE the folder, DAIKU_TEST_RUN run.json,
-- DAIKU_TEST_MODEL the model, DAIKU_TEST_REPORT where to write what was seen.
local workspace = vim.env.DAIKU_TEST_WORKSPACE
local run = vim.fn.json_decode(table.concat(vim.fn.readfile(vim.env.DAIKU_TEST_RUN), "\n"))
local seen = { chunks = {}, progress = {}, asked = {}, errors = {} }

vim.lsp.handlers["$/progress"] = function(_, params)
  if params.token == "chunks" then
    table.insert(seen.chunks, params.value)
  else
    table.insert(seen.progress, { token = params.token, kind = params.value.kind })
  end
end
-- The person presses the first button.
vim.lsp.handlers["window/showMessageRequest"] = function(_, params)
  table.insert(seen.asked, params.message)
  return params.actions[1]
end

vim.cmd("edit " .. workspace .. "/" .. run.file)
local buffer = vim.api.nvim_get_current_buf()
local id = vim.lsp.start_client({
  name = "daiku",
  cmd = vim.fn.json_decode(vim.env.DAIKU_TEST_COMMAND),
  root_dir = workspace,
  workspace_folders = { { uri = vim.uri_from_fname(workspace), name = "w" } },
  init_options = { settings = { llm = { provider = "scripted", model = vim.env.DAIKU_TEST_MODEL } } },
})
local client = vim.lsp.get_client_by_id(id)
vim.wait(20000, function() return client.initialized end, 20)
vim.lsp.buf_attach_client(buffer, id)

local function begin(method, params)
  local reply = {}
  client.request(method, params, function(err, result) reply.done, reply.err, reply.result = true, err, result end, buffer)
  return reply
end
local function answered(reply)
  vim.wait(20000, function() return reply.done end, 20)
  if reply.err then table.insert(seen.errors, reply.err) end
  return reply.result or {}
end
local function carry_out(command, argument, bar)
  argument.sessionId = seen.session
  return begin("workspace/executeCommand", {
    command = command, arguments = { argument }, workDoneToken = bar, partialResultToken = "chunks",
  })
end
local function last() return seen.chunks[#seen.chunks] or {} end

-- A problem, its quick fix, and the edit that the person allows.
seen.actions = answered(begin("textDocument/codeAction", {
  textDocument = vim.lsp.util.make_text_document_params(buffer),
  range = run.problem.range,
  context = { diagnostics = { run.problem }, only = { "quickfix" } },
}))
local fix = answered(begin("codeAction/resolve", seen.actions[1])).command
seen.session = answered(carry_out(fix.command, fix.arguments[1], "fix")).sessionId
vim.cmd("silent write")

-- A command that runs another program.
answered(carry_out(run.command.command, { text = run.command.text }, "command"))

-- Its progress is shown; there the person cancels it.
local long = carry_out(run.cancelled.command, { text = run.cancelled.text }, "long")
vim.wait(20000, function() return last().type == "delta" end, 5)
client.notify("window/workDoneProgress/cancel", { token = "long" })
answered(long)

vim.fn.writefile({ vim.fn.json_encode(seen) }, vim.env.DAIKU_TEST_REPORT)
client.stop()
vim.wait(3000, function() return client.is_stopped() end, 20)
vim.cmd("qa!")
