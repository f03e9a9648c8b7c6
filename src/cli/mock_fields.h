/* The defects that a turn of the mock's script may have, for --help. The rows come from
 * lua/agenthost/mock/fields.lua (see the Makefile), with which scripts are checked. */
#ifndef AH_CLI_MOCK_FIELDS_H
#define AH_CLI_MOCK_FIELDS_H

typedef struct ah_mock_defect {
    const char *name, *help;
} ah_mock_defect;

extern const ah_mock_defect ah_mock_defects[]; /* up to a row without a name */

#endif
