-- Headless Neovim as a plain client: no Daiku code of its own. DAIKU_TEST_COMMAND is a JSON list,
-- DAIKU_TEST_WORKSPACE the folder, DAIKU_TEST_REPORT where to write what was seen.
local command = vim.fn.json_decode(vim.env.DAIKU_TEST_COMMAND)
local workspace = vim.env.DAIKU_TEST_WORKSPACE
local seen = { chunks = {}, progress = {}, messages = {}, asked = {} }

vim.lsp.handlers["$/progress"] = function(_, params)
  if params.token == "run-1" then
    table.insert(seen.chunks, params.value)
  else
    table.insert(seen.progress, params.value.kind)
  end
end
vim.lsp.handlers["window/showMessage"] = function(_, params)
  table.insert(seen.messages, params.message)
end
-- The person presses the first button.
vim.lsp.handlers["window/showMessageRequest"] = function(_, params)
  table.insert(seen.asked, params.message)
  return params.actions[1]
end

vim.cmd("edit " .. workspace .. "/open.txt")
local buffer = vim.api.nvim_get_current_buf()
local id = vim.lsp.start_client({
  name = "daiku",
  cmd = command,
  root_dir = workspace,
  workspace_folders = { { uri = vim.uri_from_fname(workspace), name = "w" } },
  init_options = { settings = { llm = { provider = "scripted" } } },
})
local client = vim.lsp.get_client_by_id(id)
vim.wait(20000, function() return client.initialized end, 20)
vim.lsp.buf_attach_client(buffer, id)
vim.api.nvim_buf_set_lines(buffer, 0, -1, false, { "typed, not saved 😀", "second" })

local function request(method, params)
  local reply
  client.request(method, params, function(err, result) reply = { err = err, result = result } end, buffer)
  vim.wait(20000, function() return reply ~= nil end, 20)
  return reply or { err = { code = 0, message = "no answer" } }
end

seen.experimental = client.server_capabilities.experimental.daiku
seen.chat = request("daiku/chat", {
  text = "Hi", model = "scripted/script.jsonl", partialResultToken = "run-1", workDoneToken = "bar",
})
seen.command = request("workspace/executeCommand", { command = "daiku.explain", arguments = { { text = "Hi", model = "scripted/script.jsonl" } } })
seen.wrong = request("daiku/chat", { text = 5 })

-- A code action, as `vim.lsp.buf.code_action` does it: listed, resolved, its command carried out.
local place = { start = { line = 1, character = 0 }, ["end"] = { line = 1, character = 3 } }
local problem = { range = place, message = "2nd is no word", severity = 2 }
seen.actions = request("textDocument/codeAction", {
  textDocument = vim.lsp.util.make_text_document_params(buffer),
  range = place,
  context = { diagnostics = { problem } },
}).result
seen.resolved = request("codeAction/resolve", seen.actions[1]).result
local chosen = seen.resolved.command
chosen.arguments[1].model = "scripted/fix.jsonl"
seen.fixed = request("workspace/executeCommand", {
  command = chosen.command, arguments = chosen.arguments, workDoneToken = "fix", partialResultToken = "run-1",
})
seen.lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
vim.fn.writefile({ vim.fn.json_encode(seen) }, vim.env.DAIKU_TEST_REPORT)
client.stop()
vim.wait(3000, function() return client.is_stopped() end, 20)
vim.cmd("qa!")
