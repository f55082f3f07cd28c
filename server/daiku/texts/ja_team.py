"""Japanese for the team: its moves, its questions, its report, and the gate before a step is done."""

from __future__ import annotations

# fmt: off
TEAM: tuple[tuple[str, str], ...] = (
    ("The coder did not finish: {why}", "コーダーは終えられませんでした: {why}"),
    ("The runner did not finish: {why}", "ランナーは終えられませんでした: {why}"),
    ("`{command}` did not end in time and was stopped, so it shows nothing. Where it needs longer, `Check (20 min): …` in the plan or limits.check_seconds gives it that:\n{output}", "`{command}` は時間内に終わらず止められたため、何も示していません。もっと時間が要るなら、計画の `Check (20 min): …` か limits.check_seconds で与えられます:\n{output}"),
    ("`{command}` did not end in time and was stopped, so it shows nothing.", "`{command}` は時間内に終わらず止められたため、何も示していません。"),
    ("The plan was made anew.", "計画を作り直しました。"),
    ("Steps that went: {names}", "なくなったステップ: {names}"),
    ("Steps that came: {names}", "加わったステップ: {names}"),
    ("Checks that are gone: {names}", "なくなった確認: {names}"),
    ("Checks that are new: {names}", "新しい確認: {names}"),
    # how it ends
    ("- Step {number}, “{name}”, is done: its checks pass.", "- ステップ {number}「{name}」は完了し、確認に合格しています。"),
    ("- Step {number}, “{name}”, was met before any work: its checks pass.", "- ステップ {number}「{name}」は作業の前から満たされていて、確認に合格しています。"),
    ("- Step {number}, “{name}”, is done, but its checks do not prove it.", "- ステップ {number}「{name}」は完了しましたが、確認はそれを証明していません。"),
    ("- step “{name}” ({status}): {why}", "- ステップ「{name}」（{status}）: {why}"),
    ("exit code {code}, but it passed before the work as well", "終了コード {code}、ただし作業の前にも合格していました"),
    ("exit code {code}, but it ran no test", "終了コード {code}、ただしテストは一つも実行されませんでした"),
    ("exit code {code}, but the work changed what it is made of", "終了コード {code}、ただし確認の元になるものを作業が変更しました"),
    ("- {text} (not proven)", "- {text}（証明されていません）"),
    ("- Step {number}, “{name}”, is done by word: it has no checks, so it is not proven. (not checked)", "- ステップ {number}「{name}」は自己申告で完了です。確認がないため証明されていません。"),
    ("- Step {number}, “{name}”, was done; a check of it fails now.", "- ステップ {number}「{name}」は完了しましたが、今は確認に失敗します。"),
    ("- Step {number}, “{name}”, was done; its checks passed, but not since the last edit. (not checked)", "- ステップ {number}「{name}」は完了しましたが、最後の編集の後は確認していません。"),
    ("- Step {number}, “{name}”, failed. (not checked)", "- ステップ {number}「{name}」は失敗しました。"),
    ("- Step {number}, “{name}”, is not finished. (not checked)", "- ステップ {number}「{name}」は未完了です。"),
    ("- Step {number}, “{name}”, was not begun. (not checked)", "- ステップ {number}「{name}」は未着手です。"),
    ("a check of it fails now", "今は確認に失敗します"),
    ("its checks passed, but not since the last edit", "最後の編集の後は確認していません"),
    ("- step “{name}” ({status})", "- ステップ「{name}」（{status}）"),
    ("`{command}` ended with exit code {code}:\n{output}", "`{command}` は終了コード {code} で終わりました:\n{output}"),
    # the gate
    ("The plan “{name}” is not finished: {done} of {total} steps are done. Open: {names}.", "計画「{name}」は終わっていません: {total} ステップ中 {done} 完了。未完了: {names}。"),
    ("Step “{name}” is to count as done. Its check `{check}` cannot be shown here: no editor is connected. Count it as met?", "ステップ「{name}」を完了にしようとしています。エディターが接続されていないため、確認「{check}」をここで示せません。満たしたものとしますか？"),
    # plans as text
    ("There is no step in this text.", "この文章にはステップがありません。"),
    ("Give a checklist: a line `- [ ] Step 1: …` for each step.", "チェックリストの形で、ステップごとに `- [ ] Step 1: …` の行を書いてください。"),
)
